package org.example.federated

import android.app.Activity
import android.os.Bundle
import android.text.InputType
import android.view.View
import android.widget.AdapterView
import android.widget.ArrayAdapter
import android.widget.Button
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.ScrollView
import android.widget.Spinner
import android.widget.TextView

/** Shows what an exported model is about, takes the numbers of an example and says what the model answers. */
class MainActivity : Activity() {
    private val rows by lazy { LinearLayout(this).apply { orientation = LinearLayout.VERTICAL } }
    private val result by lazy { TextView(this).apply { textSize = 20f } }
    private var fields: List<EditText> = emptyList()
    private var model: ExportedModel? = null

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val column = LinearLayout(this).apply { orientation = LinearLayout.VERTICAL }
        val names = findModels()
        if (names.isEmpty()) {
            column.addView(makeText("Put a .tflite file of launch.export and its .json into app/src/main/assets."))
        } else {
            column.addView(makeChoice(names))
            column.addView(rows)
            column.addView(Button(this).apply { text = "Answer"; setOnClickListener { showAnswer() } })
            column.addView(result)
        }
        setContentView(ScrollView(this).apply { fitsSystemWindows = true; addView(column) })
    }

    override fun onDestroy() {
        model?.close()
        super.onDestroy()
    }

    /** The files that have a description beside them; those that train on the phone are another matter. */
    private fun findModels(): List<String> {
        val files = assets.list("").orEmpty().toSet()
        return files.filter { it.endsWith(".tflite") }.map { it.removeSuffix(".tflite") }
            .filter { "$it.json" in files && !it.endsWith(".training") }.sorted()
    }

    private fun makeChoice(names: List<String>) = Spinner(this).apply {
        adapter = ArrayAdapter(this@MainActivity, android.R.layout.simple_spinner_dropdown_item, names)
        onItemSelectedListener = object : AdapterView.OnItemSelectedListener {
            override fun onItemSelected(parent: AdapterView<*>?, view: View?, position: Int, id: Long) =
                choose(names[position])

            override fun onNothingSelected(parent: AdapterView<*>?) = Unit
        }
    }

    private fun choose(name: String) {
        model?.close()
        val chosen = ExportedModel(assets, name).also { model = it }
        val about = chosen.description
        rows.removeAllViews()
        result.text = ""
        rows.addView(makeText("${about.file} tells: ${about.labels.joinToString()}"))
        if (about.features.size == about.size) {
            fields = about.features.map { feature -> makeField("${(feature.lowest + feature.highest) / 2}") }
            about.features.zip(fields).forEach { (feature, field) ->
                rows.addView(makeText("$feature"))
                rows.addView(field)
            }
        } else { // a picture, or the steps of a window
            fields = listOf(makeField("0 ".repeat(about.size).trim()))
            rows.addView(makeText("${about.size} numbers with spaces between them, row by row"))
            about.features.forEach { rows.addView(makeText("Channel: $it")) }
            rows.addView(fields[0])
        }
    }

    private fun showAnswer() {
        val chosen = model ?: return
        val numbers = fields.flatMap { it.text.split(" ", "\n", ";") }.filter { it.isNotBlank() }.map { it.toFloatOrNull() }
        val wanted = chosen.description.size
        result.text = when {
            chosen.description.takesTokens -> "This sample gives models numbers, and this one takes tokens."
            null in numbers || numbers.size != wanted -> "Expected $wanted numbers."
            else -> chosen.answer(numbers.filterNotNull().toFloatArray()).joinToString("\n")
        }
    }

    private fun makeText(words: String) = TextView(this).apply { text = words }

    private fun makeField(start: String) = EditText(this).apply {
        inputType = InputType.TYPE_CLASS_TEXT or InputType.TYPE_TEXT_FLAG_MULTI_LINE
        setText(start)
    }
}
