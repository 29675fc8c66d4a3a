package org.tensorflow.lite;

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Map;
import org.jetbrains.annotations.NotNull;

/** Signatures: https://developers.google.com/edge/api/tflite/java/org/tensorflow/lite/Interpreter */
public final class Interpreter implements AutoCloseable {
    public static class Options {
        public native Options setNumThreads(int numThreads);

        public native Options setUseXNNPACK(boolean useXNNPACK);
    }

    public Interpreter(@NotNull File modelFile) {}

    public Interpreter(@NotNull File modelFile, Options options) {}

    public Interpreter(@NotNull ByteBuffer byteBuffer) {}

    public Interpreter(@NotNull ByteBuffer byteBuffer, Options options) {}

    public native void run(Object input, Object output);

    public native void runForMultipleInputsOutputs(@NotNull Object[] inputs, @NotNull Map<Integer, Object> outputs);

    public native void runSignature(@NotNull Map<String, Object> inputs, @NotNull Map<String, Object> outputs);

    public native void runSignature(
            @NotNull Map<String, Object> inputs, @NotNull Map<String, Object> outputs, String signatureKey);

    public native String[] getSignatureKeys();

    public native String[] getSignatureInputs(String signatureKey);

    public native String[] getSignatureOutputs(String signatureKey);

    public native Tensor getInputTensor(int inputIndex);

    public native Tensor getOutputTensor(int outputIndex);

    public native Tensor getInputTensorFromSignature(String inputName, String signatureKey);

    public native Tensor getOutputTensorFromSignature(String outputName, String signatureKey);

    public native void resizeInput(int idx, @NotNull int[] dims);

    public native void allocateTensors();

    public native void resetVariableTensors();

    @Override
    public native void close();
}
