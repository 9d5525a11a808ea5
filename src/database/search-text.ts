/**
 * What a person types to find something, as patterns for ILIKE ALL: each word must occur, in any case, anywhere. Spaces and
 * slashes separate words, so that `team/key` and `team key` find the same.
 */
export function patternsOf(text: string): string[] {
  return wordsOf(text).map((word) => `%${word.replace(/[\\%_]/g, '\\$&')}%`);
}

function wordsOf(text: string): string[] {
  const words = text.split(/[\s/]+/).filter((word) => word !== '');
  // Nothing but separators: a name may be one.
  return words.length === 0 ? [text] : words;
}
