package android.widget;

import android.content.Context;

/** Signatures: https://developer.android.com/reference/android/widget/Button */
public class Button extends TextView {
    public Button(Context context) {
        super(context);
    }
}
