// Every line inside the function is wrong. The check fails unless the compiler says so of each of them.
import android.content.Context
import com.google.ai.edge.litert.Accelerator
import com.google.ai.edge.litert.CompiledModel
import com.google.ai.edge.litert.TensorBuffer
import org.json.JSONObject
import org.tensorflow.lite.Interpreter

fun plantedErrors(context: Context, interpreter: Interpreter, model: CompiledModel, buffer: TensorBuffer) {
    interpreter.run("an input alone")
    interpreter.runSignature(mapOf("x" to 1), mapOf<String, Any>(), 3)
    Interpreter.Options().setNumThreads("one")
    context.assets.open(7)
    model.run(FloatArray(4))
    CompiledModel.Options(Accelerator.TPU)
    CompiledModel.create(context, "global.int8.tflite")
    buffer.writeFloat(intArrayOf(1))
    val size: String = JSONObject("{}").getInt("size")
}
