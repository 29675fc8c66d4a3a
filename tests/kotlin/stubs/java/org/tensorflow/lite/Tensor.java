package org.tensorflow.lite;

/** Signatures: https://developers.google.com/edge/api/tflite/java/org/tensorflow/lite/Tensor */
public interface Tensor {
    int numDimensions();

    int numBytes();

    int numElements();

    int[] shape();

    String name();
}
