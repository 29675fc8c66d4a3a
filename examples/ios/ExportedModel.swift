import Foundation
import TensorFlowLite

/// An exported file of the app's bundle. Not safe to be used by several threads at once: keep it on one queue.
final class ExportedModel {
    let description: ModelDescription
    private let interpreter: Interpreter

    /// For example "global.int8".
    init(named name: String) throws {
        guard let path = Bundle.main.path(forResource: name, ofType: "tflite") else {
            throw CocoaError(.fileNoSuchFile)
        }
        description = try ModelDescription.load(name)
        var options = Interpreter.Options()
        options.threadCount = 1
        interpreter = try Interpreter(modelPath: path, options: options)
        try interpreter.allocateTensors()
    }

    func computeOutputs(_ example: [Float]) throws -> [Float] {
        let preprocessing = description.preprocessing
        let values = example.map { $0 * preprocessing.scale + preprocessing.offset }
        try interpreter.copy(encode(values), toInputAt: 0)
        try interpreter.invoke()
        return decode(try interpreter.output(at: 0).data)
    }

    /// The class with the largest output.
    func classify(_ example: [Float]) throws -> String {
        let outputs = try computeOutputs(example)
        let best = outputs.indices.max { outputs[$0] < outputs[$1] } ?? 0
        return description.labels[best]
    }

    private func encode(_ values: [Float]) -> Data {
        guard let scale = description.input.scale, let zeroPoint = description.input.zeroPoint else {
            return values.withUnsafeBytes { Data($0) }
        }
        let stored = values.map { value -> Int8 in
            let rounded = (value / scale).rounded(.toNearestOrEven) + Float(zeroPoint)
            return Int8(min(127, max(-128, rounded)))
        }
        return stored.withUnsafeBytes { Data($0) }
    }

    private func decode(_ data: Data) -> [Float] {
        guard let scale = description.output.scale, let zeroPoint = description.output.zeroPoint else {
            return data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        }
        let stored = data.withUnsafeBytes { Array($0.bindMemory(to: Int8.self)) }
        return stored.map { Float(Int($0) - zeroPoint) * scale }
    }
}
