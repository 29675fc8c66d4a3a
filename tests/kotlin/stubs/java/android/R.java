package android;

/** Signatures: https://developer.android.com/reference/android/R.layout */
public final class R {
    public static final class layout {
        public static final int simple_spinner_dropdown_item = 17367049;
    }
}
