package android.os;

/** Signatures: https://developer.android.com/reference/android/os/Bundle */
public final class Bundle {}
