/**
 * Returns the text below the heading of `version`, up to the next heading of its level, or undefined if there is none.
 */
export function findSection(document: string, version: string): string | undefined {
  const heading = new RegExp(`^## \\[?${version.replaceAll('.', '\\.')}\\]?(?=\\s|$).*$`, 'm').exec(document);
  if (heading === null) return undefined;
  const rest = document.slice(heading.index + heading[0].length);
  const next = /^## /m.exec(rest);
  return rest.slice(0, next?.index ?? rest.length).trim();
}

/** Returns the release notes of a version: what changed, and how to upgrade to it. Throws if one of them is missing. */
export function releaseNotes(version: string, changelog: string, releases: string): string {
  const changed = findSection(changelog, version);
  if (!changed) throw new Error(`CHANGELOG.md has no section for ${version}`);
  const upgrade = findSection(releases, version);
  if (!upgrade) throw new Error(`docs/releases.md does not say how to upgrade to ${version}`);
  return `# ${version}\n\n## Upgrading\n\n${upgrade}\n\n## Changes\n\n${changed.replaceAll(/^###/gm, '####')}\n`;
}
