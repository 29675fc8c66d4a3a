import Foundation

/// A feature, or a channel of a series, in the unit of the stored numbers.
struct Feature: Decodable {
    let name: String
    let unit: String
    let lowest: Double
    let highest: Double
}

struct TensorForm: Decodable {
    let shape: [Int]
    let dtype: String
    let scale: Float?
    let zeroPoint: Int?
}

struct Preprocessing: Decodable {
    let scale: Float
    let offset: Float
}

/// The JSON beside an exported file.
struct ModelDescription: Decodable {
    let file: String
    let labels: [String]
    let features: [Feature]
    let input: TensorForm
    let output: TensorForm
    let preprocessing: Preprocessing

    static func load(_ name: String) throws -> ModelDescription {
        guard let url = Bundle.main.url(forResource: name, withExtension: "json") else {
            throw CocoaError(.fileNoSuchFile)
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(ModelDescription.self, from: Data(contentsOf: url))
    }
}
