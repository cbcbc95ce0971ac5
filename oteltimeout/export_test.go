package oteltimeout

// VersionIn is what a program with the build info reports.
var VersionIn = versionIn
