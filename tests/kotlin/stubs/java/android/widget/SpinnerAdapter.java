package android.widget;

/** Signatures: https://developer.android.com/reference/android/widget/SpinnerAdapter */
public interface SpinnerAdapter extends Adapter {}
