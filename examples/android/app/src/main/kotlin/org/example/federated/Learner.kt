package org.example.federated

import android.content.Context
import java.io.FileInputStream
import java.nio.FloatBuffer
import java.nio.channels.FileChannel
import org.json.JSONObject
import org.tensorflow.lite.Interpreter

/**
 * A file for on-device training among the assets, `name` for example "global.training", with LiteRT's `Interpreter`:
 * it learns from examples, answers, and takes and gives its weights, as a client of a federation does.
 */
class Learner(context: Context, name: String) : AutoCloseable {
    private val description = JSONObject(context.assets.open("$name.json").bufferedReader().use { it.readText() })
    private val scale = description.getJSONObject("preprocessing").getDouble("scale").toFloat()
    private val offset = description.getJSONObject("preprocessing").getDouble("offset").toFloat()
    private val labels = description.getJSONArray("labels").let { names -> List(names.length()) { names.getString(it) } }
    private val batchSize = description.getInt("batch_size")
    private val interpreter = Interpreter(map(context, "$name.tflite"), Interpreter.Options().setNumThreads(1))

    /** One pass over examples as the data set stores them, with their classes' numbers; the mean loss of its steps. */
    fun train(examples: List<FloatArray>, classes: List<Int>, learningRate: Float): Float {
        val batches = examples.indices.shuffled().chunked(batchSize)
        return batches.map { chosen -> step(chosen.map { examples[it] }, chosen.map { classes[it] }, learningRate) }
            .average().toFloat()
    }

    private fun step(examples: List<FloatArray>, classes: List<Int>, learningRate: Float): Float {
        val size = examples.first().size
        val x = FloatBuffer.wrap(FloatArray(batchSize * size) { i ->
            examples[i / size % examples.size][i % size] * scale + offset
        })
        val y = IntArray(batchSize) { row -> classes.getOrElse(row) { -1 } } // what is repeated does not count
        val loss = FloatBuffer.allocate(1)
        val inputs = mapOf<String, Any>("x" to x, "y" to y, "learning_rate" to learningRate)
        interpreter.runSignature(inputs, mapOf<String, Any>("loss" to loss), "train")
        return loss.get(0)
    }

    fun classify(example: FloatArray): String {
        val x = FloatBuffer.wrap(FloatArray(example.size) { example[it] * scale + offset })
        val logits = FloatBuffer.allocate(labels.size)
        interpreter.runSignature(mapOf<String, Any>("x" to x), mapOf<String, Any>("logits" to logits), "infer")
        return labels[labels.indices.maxBy { logits.get(it) }]
    }

    /** The weights to send, "weight_0" and so on, each in row-major order. */
    fun getWeights(): Map<String, FloatArray> {
        val weights = interpreter.getSignatureOutputs("get_weights").associateWith { weight ->
            FloatBuffer.allocate(interpreter.getOutputTensorFromSignature(weight, "get_weights").numElements())
        }
        interpreter.runSignature(mapOf<String, Any>("unused" to 0), weights, "get_weights")
        return weights.mapValues { (_, buffer) -> buffer.array() }
    }

    /** Weights that came from the server, or that the app has kept. */
    fun setWeights(weights: Map<String, FloatArray>) {
        val inputs = weights.mapValues { (_, values) -> FloatBuffer.wrap(values) }
        interpreter.runSignature(inputs, mapOf<String, Any>(), "set_weights")
    }

    private fun map(context: Context, asset: String) = context.assets.openFd(asset).use { file ->
        FileInputStream(file.fileDescriptor).channel.map(
            FileChannel.MapMode.READ_ONLY, file.startOffset, file.declaredLength
        )
    }

    override fun close() = interpreter.close()
}
