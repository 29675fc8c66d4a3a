package org.json;

/** https://developer.android.com/reference/org/json/JSONException */
public class JSONException extends Exception {}
