/**
 * Signatures of LiteRT 2.1: https://ai.google.dev/edge/litert/next/android_kotlin, in full in Model.kt, TensorBuffer.kt,
 * Environment.kt and Common.kt of https://github.com/google-ai-edge/LiteRT/tree/main/litert/kotlin
 */
package com.google.ai.edge.litert

import android.content.Context
import android.content.res.AssetManager

class LiteRtException(message: String) : Exception(message)

enum class Accelerator { NONE, CPU, GPU, NPU }

abstract class JniHandle internal constructor() : AutoCloseable {
    final override fun close(): Unit = TODO()
}

class TensorBuffer internal constructor() : JniHandle() {
    fun writeInt(data: IntArray): Unit = TODO()
    fun writeFloat(data: FloatArray): Unit = TODO()
    fun writeInt8(data: ByteArray): Unit = TODO()
    fun writeBoolean(data: BooleanArray): Unit = TODO()
    fun readInt(): IntArray = TODO()
    fun readFloat(): FloatArray = TODO()
    fun readInt8(): ByteArray = TODO()
    fun readBoolean(): BooleanArray = TODO()
}

class Environment private constructor() : JniHandle() {
    fun getAvailableAccelerators(): Set<Accelerator> = TODO()

    companion object {
        @JvmStatic
        fun create(context: Context): Environment = TODO()
    }
}

class CompiledModel private constructor() : JniHandle() {
    data class CpuOptions(
        val numThreads: Int? = null, val xnnPackFlags: Int? = null, val xnnPackWeightCachePath: String? = null
    )

    class Options(vararg accelerators: Accelerator) {
        var cpuOptions: CpuOptions? = null

        companion object {
            @JvmStatic val CPU = Options(Accelerator.CPU)
        }
    }

    fun createInputBuffer(inputName: String, signature: String? = null): TensorBuffer = TODO()
    fun createOutputBuffer(outputName: String, signature: String? = null): TensorBuffer = TODO()
    fun createInputBuffers(signatureIndex: Int = 0): List<TensorBuffer> = TODO()
    fun createInputBuffers(signature: String): List<TensorBuffer> = TODO()
    fun createOutputBuffers(signatureIndex: Int = 0): List<TensorBuffer> = TODO()
    fun createOutputBuffers(signature: String): List<TensorBuffer> = TODO()
    fun run(inputs: List<TensorBuffer>, signatureIndex: Int = 0): List<TensorBuffer> = TODO()
    fun run(inputs: List<TensorBuffer>, signature: String): List<TensorBuffer> = TODO()
    fun run(inputs: List<TensorBuffer>, outputs: List<TensorBuffer>, signatureIndex: Int = 0): Unit = TODO()
    fun run(inputs: List<TensorBuffer>, outputs: List<TensorBuffer>, signature: String): Unit = TODO()
    fun run(
        inputs: Map<String, TensorBuffer>, outputs: Map<String, TensorBuffer>, signature: String? = null
    ): Unit = TODO()

    companion object {
        @JvmStatic
        fun create(
            assetManager: AssetManager,
            assetName: String,
            options: Options = Options.CPU,
            optionalEnv: Environment? = null,
        ): CompiledModel = TODO()

        @JvmStatic
        fun create(filePath: String, options: Options = Options.CPU, optionalEnv: Environment? = null): CompiledModel =
            TODO()
    }
}
