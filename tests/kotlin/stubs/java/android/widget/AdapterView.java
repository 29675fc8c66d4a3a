package android.widget;

import android.content.Context;
import android.view.View;
import android.view.ViewGroup;
import org.jetbrains.annotations.Nullable;

/** Signatures: https://developer.android.com/reference/android/widget/AdapterView */
public abstract class AdapterView<T extends Adapter> extends ViewGroup {
    public interface OnItemSelectedListener {
        void onItemSelected(AdapterView<?> parent, View view, int position, long id);

        void onNothingSelected(AdapterView<?> parent);
    }

    public AdapterView(Context context) {
        super(context);
    }

    public native int getSelectedItemPosition();

    public native void setOnItemSelectedListener(@Nullable OnItemSelectedListener listener);

    @Nullable
    public final native OnItemSelectedListener getOnItemSelectedListener();
}
