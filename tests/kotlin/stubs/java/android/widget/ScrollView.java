package android.widget;

import android.content.Context;
import android.view.ViewGroup;

/** Signatures: https://developer.android.com/reference/android/widget/ScrollView */
public class ScrollView extends ViewGroup {
    public ScrollView(Context context) {
        super(context);
    }
}
