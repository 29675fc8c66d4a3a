package org.example.federated

import kotlin.math.exp
import kotlin.math.round
import org.json.JSONArray
import org.json.JSONObject

/** A feature, or a channel of a series; the range is that of some test examples. */
class Feature(val name: String, val unit: String, val lowest: Float, val highest: Float) {
    override fun toString(): String {
        val known = if (unit.isEmpty()) name else "$name [$unit]"
        return "$known, $lowest to $highest"
    }
}

/** A category: the places of its features, of which that of the value is 1 and the others are 0, or of its only one. */
class Group(val name: String, val places: List<Int>, val values: List<String>, val isIndex: Boolean, val hasNone: Boolean) {
    /** What a person chooses from: the values and, where the data have examples without any, none of them. */
    val choices: List<String> = if (hasNone) values + "none of them" else values

    /** Puts a choice, by its place in `choices`, into an example. */
    fun write(example: FloatArray, choice: Int) {
        if (isIndex) example[places[0]] = choice.toFloat()
        else places.forEachIndexed { i, place -> example[place] = if (i == choice) 1f else 0f }
    }
}

/** What stands in the JSON beside an exported file; it needs nothing of Android but its JSON. */
class ModelDescription(text: String) {
    private val json = JSONObject(text)
    private val input = json.getJSONObject("input")
    private val output = json.getJSONObject("output")
    private val task = if (json.has("task")) json.getString("task") else "classification"

    val file: String = json.getString("file")
    val labels: List<String> = json.getJSONArray("labels").let { names -> List(names.length()) { names.getString(it) } }
    val features: List<Feature> =
        if (json.has("features")) json.getJSONArray("features").let { all -> List(all.length()) { read(all, it) } }
        else emptyList()

    /** The categories among the features; files of an earlier version name none. */
    val groups: List<Group> =
        if (json.has("groups")) json.getJSONArray("groups").let { all -> List(all.length()) { readGroup(all.getJSONObject(it)) } }
        else emptyList()

    /** How many numbers an example has. */
    val size: Int = input.getJSONArray("shape").let { shape -> (0 until shape.length()).fold(1) { n, i -> n * shape.getInt(i) } }
    val isInt8: Boolean = input.getString("dtype") == "int8" // the output's is the same
    val takesTokens: Boolean = input.getString("dtype") == "int32"

    /** Numbers as the data set stores them to what the model gets. */
    fun preprocess(example: FloatArray): FloatArray {
        val preprocessing = json.getJSONObject("preprocessing")
        val scale = preprocessing.getDouble("scale").toFloat()
        val offset = preprocessing.getDouble("offset").toFloat()
        return FloatArray(example.size) { example[it] * scale + offset }
    }

    fun quantize(values: FloatArray): ByteArray {
        val scale = input.getDouble("scale").toFloat()
        val zeroPoint = input.getInt("zero_point")
        return ByteArray(values.size) { (round(values[it] / scale).toInt() + zeroPoint).coerceIn(-128, 127).toByte() }
    }

    fun dequantize(stored: ByteArray): FloatArray {
        val scale = output.getDouble("scale").toFloat()
        val zeroPoint = output.getInt("zero_point")
        return FloatArray(stored.size) { (stored[it] - zeroPoint) * scale }
    }

    /** The answer in lines, from the model's outputs as real numbers. */
    fun answer(outputs: FloatArray): List<String> = when (task) {
        "classification" -> rank(outputs)
        "binary" -> (1 / (1 + exp(-outputs[0]))).let { chance -> listOf("${labels[1]}: ${percent(chance)}") }
        "multi_label" -> outputs.indices.map { "${labels[it]}: ${percent(1 / (1 + exp(-outputs[it])))}" }
        else -> outputs.indices.map { "${labels.getOrElse(it) { i -> "output ${i + 1}" }}: ${restore(outputs[it], it)}" }
    }

    private fun rank(logits: FloatArray): List<String> {
        val largest = logits.max()
        val powers = logits.map { exp(it - largest) }
        val sum = powers.sum()
        return powers.indices.sortedByDescending { powers[it] }.map { "${labels[it]}: ${percent(powers[it] / sum)}" }
    }

    /** An output of a regression in the unit of the labels. */
    private fun restore(value: Float, place: Int): Float {
        if (!json.has("label_scale")) return value
        val scale = json.getJSONArray("label_scale").getDouble(place).toFloat()
        return value * scale + json.getJSONArray("label_offset").getDouble(place).toFloat()
    }

    private fun percent(share: Float) = "${round(100 * share).toInt()} %"

    private fun read(all: JSONArray, place: Int): Feature {
        val fact = all.getJSONObject(place)
        val range = listOf("lowest", "highest").map { fact.getDouble(it).toFloat() }
        return Feature(fact.getString("name"), fact.getString("unit"), range[0], range[1])
    }

    private fun readGroup(fact: JSONObject): Group {
        val places = fact.getJSONArray("features").let { all -> List(all.length()) { all.getInt(it) } }
        val values = fact.getJSONArray("values").let { all -> List(all.length()) { all.getString(it) } }
        return Group(fact.getString("name"), places, values, fact.getBoolean("is_index"), fact.getBoolean("has_none"))
    }
}
