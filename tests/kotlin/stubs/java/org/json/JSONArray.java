package org.json;

import org.jetbrains.annotations.NotNull;

/** Signatures: https://developer.android.com/reference/org/json/JSONArray */
public class JSONArray {
    public native int length();

    @NotNull
    public native JSONObject getJSONObject(int index) throws JSONException;

    @NotNull
    public native String getString(int index) throws JSONException;

    public native int getInt(int index) throws JSONException;

    public native double getDouble(int index) throws JSONException;
}
