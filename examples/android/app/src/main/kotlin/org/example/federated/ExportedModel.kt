package org.example.federated

import android.content.res.AssetManager
import com.google.ai.edge.litert.Accelerator
import com.google.ai.edge.litert.CompiledModel

/** An exported file among the app's assets, ready to run; `name` is for example "global.int8". */
class ExportedModel(assets: AssetManager, name: String) : AutoCloseable {
    val description = ModelDescription(assets.open("$name.json").bufferedReader().use { it.readText() })
    private val model = CompiledModel.create(assets, "$name.tflite", CompiledModel.Options(Accelerator.CPU))
    private val inputs = model.createInputBuffers()
    private val outputs = model.createOutputBuffers()

    /** The answer to an example as the data set stores it, in lines. */
    fun answer(example: FloatArray): List<String> {
        val values = description.preprocess(example)
        if (description.isInt8) inputs[0].writeInt8(description.quantize(values)) else inputs[0].writeFloat(values)
        model.run(inputs, outputs)
        val output = outputs[0]
        return description.answer(
            if (description.isInt8) description.dequantize(output.readInt8()) else output.readFloat()
        )
    }

    override fun close() {
        (inputs + outputs).forEach { it.close() }
        model.close()
    }
}
