import { Fault } from '../fault.js';

/** The strong entity tag of a revision (RFC 9110 8.8.3). */
export function entityTag(revision: string): string {
  return `"${revision}"`;
}

/**
 * The revisions that If-Match asks for (RFC 9110 13.1.1), or null when any will do.
 *
 * @throws Fault invalid for what is not a list of entity tags
 */
export function expectedRevisions(ifMatch: string | undefined): string[] | null {
  if (ifMatch === undefined || ifMatch.trim() === '*') return null;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (!tags.every((tag) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag))) {
    throw Fault.of('invalid', 'If-Match', 'must be the ETag of an answer before, with its quotes, or *');
  }
  // Weak tags never match here (RFC 9110 13.1.1).
  return tags.filter((tag) => !tag.startsWith('W/')).map((tag) => tag.slice(1, -1));
}
