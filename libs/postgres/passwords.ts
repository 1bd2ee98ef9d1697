/** Between the encoded passwords in a URL: a line end, which no password contains. */
export const passwordSeparator = '%0A';

/** Puts passwords of a role into its URL, of which one works at a time; the first one is to be set by its migration. */
export function setPasswords(url: URL, passwords: readonly string[]): void {
  url.password = passwords.map(encodeURIComponent).join(passwordSeparator);
}

/** Returns the passwords in a URL, in order. Throws a URIError if one is not percent-encoded. */
export function passwordsOf(url: URL): string[] {
  return url.password.split(passwordSeparator).map(decodeURIComponent);
}
