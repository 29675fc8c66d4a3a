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
    private var entries: List<(FloatArray) -> Boolean> = emptyList() // each writes its part; false: it is no number
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

    private fun makeList(names: List<String>) = Spinner(this).apply {
        adapter = ArrayAdapter(this@MainActivity, android.R.layout.simple_spinner_dropdown_item, names)
    }

    private fun makeChoice(names: List<String>) = makeList(names).apply {
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
            entries = about.features.indices.mapNotNull { addEntry(about, it) }
        } else { // a picture, or the steps of a window
            val field = makeField("0 ".repeat(about.size).trim())
            entries = listOf { example -> write(field, example, 0, about.size) }
            rows.addView(makeText("${about.size} numbers with spaces between them, row by row"))
            about.features.forEach { rows.addView(makeText("Channel: $it")) }
            rows.addView(field)
        }
    }

    /** A field for a feature, or one list for all features of a category, at the first of these. */
    private fun addEntry(about: ModelDescription, place: Int): ((FloatArray) -> Boolean)? {
        val group = about.groups.find { place in it.places }
        if (group == null) {
            val feature = about.features[place]
            val field = makeField("${(feature.lowest + feature.highest) / 2}")
            rows.addView(makeText("$feature"))
            rows.addView(field)
            return { example -> write(field, example, place, 1) }
        }
        if (place != group.places.min()) return null
        val list = makeList(group.choices)
        rows.addView(makeText(group.name))
        rows.addView(list)
        return { example -> group.write(example, list.selectedItemPosition); true }
    }

    /** Writes so many numbers of a field into an example; false if it holds others. */
    private fun write(field: EditText, example: FloatArray, start: Int, count: Int): Boolean {
        val numbers = field.text.split(" ", "\n", ";").filter { it.isNotBlank() }.map { it.toFloatOrNull() }
        if (numbers.size != count) return false
        numbers.forEachIndexed { i, number -> example[start + i] = number ?: return false }
        return true
    }

    private fun showAnswer() {
        val chosen = model ?: return
        val example = FloatArray(chosen.description.size)
        result.text = when {
            chosen.description.takesTokens -> "This sample gives models numbers, and this one takes tokens."
            !entries.all { it(example) } -> "Expected ${example.size} numbers."
            else -> chosen.answer(example).joinToString("\n")
        }
    }

    private fun makeText(words: String) = TextView(this).apply { text = words }

    private fun makeField(start: String) = EditText(this).apply {
        inputType = InputType.TYPE_CLASS_TEXT or InputType.TYPE_TEXT_FLAG_MULTI_LINE
        setText(start)
    }
}
