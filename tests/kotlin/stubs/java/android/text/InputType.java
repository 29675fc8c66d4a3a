package android.text;

/** Signatures: https://developer.android.com/reference/android/text/InputType */
public interface InputType {
    int TYPE_CLASS_NUMBER = 2;
    int TYPE_CLASS_TEXT = 1;
    int TYPE_TEXT_FLAG_MULTI_LINE = 131072;
}
