package android.widget;

/** Signatures: https://developer.android.com/reference/android/widget/Adapter */
public interface Adapter {}
