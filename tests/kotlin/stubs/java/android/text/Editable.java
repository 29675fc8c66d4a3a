package android.text;

/** Signatures: https://developer.android.com/reference/android/text/Editable */
public interface Editable extends CharSequence {}
