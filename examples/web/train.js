// Trains a file of `launch.export --on_device_training` in a browser; tried with @litertjs/core 2.5.3.
//
// bytes: the file. examples: a Float32Array of a batch, preprocessed. classes: an Int32Array of their classes' numbers.
import { loadAndCompile, Tensor } from "@litertjs/core";

export async function train(bytes, examples, classes) {
    const model = await loadAndCompile(bytes, { accelerator: "wasm" });
    const details = model.signatures.train.getInputDetails().find(({ name }) => name === "x");
    const x = new Tensor(examples, [...details.shape]);
    const y = new Tensor(classes, [classes.length]);
    const learning_rate = new Tensor(new Float32Array([0.1]), []);
    for (let step = 0; step < 10; step++) {
        const { loss } = await model.run("train", { x, y, learning_rate });
        console.log((await loss.data())[0]);
        loss.delete();
    }
    const weights = await model.run("get_weights", { unused: new Tensor(new Int32Array([0]), []) });
    await model.run("set_weights", weights);
    return weights; // weight_0 and so on: what a client sends; set_weights takes what came from a server
}
