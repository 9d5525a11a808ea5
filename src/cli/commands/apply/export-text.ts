import { Document, isCollection, isMap, isPair, isScalar, type Node, Scalar } from 'yaml';
import { UNSAFE } from '../../output.js';
import type { ExportDocument, Item } from './export-document.js';

/** For readers of YAML 1.1, `yes` and `1:20` are no text without quotes. No line is broken. */
const OPTIONS = { compat: 'yaml-1.1', aliasDuplicateObjects: false } as const;
const LAYOUT = { lineWidth: 0 };
/** Spaces at the ends of a text or its lines. */
const AT_ENDS = /^\s|\s$|[ \t]\n/;

/**
 * The file for `postern apply`.
 *
 * @param head lines of a comment at its beginning
 * @param remark a comment beside what an object has as stored
 */
export function exportText(
  document: ExportDocument,
  head: readonly string[],
  remark: (item: Item) => string | undefined,
): string {
  const text = head.map((line) => `# ${line}`.trimEnd());
  const lists = Object.entries(document);
  if (lists.length === 0) text.push('{}');
  for (const [list, items] of lists) {
    text.push('', `${list}:`);
    if (!Array.isArray(items)) {
      text.push(objectText(items));
      continue;
    }
    // One by one: the nodes of a whole list take far more memory than its text.
    for (const item of items) text.push(itemText(item, remark(item)));
  }
  return `${text.join('\n')}\n`;
}

function objectText(item: Item): string {
  const document = new Document(item, OPTIONS);
  layOut(document.contents, 1);
  return indented(document);
}

function itemText(item: Item, remark: string | undefined): string {
  const document = new Document([item], OPTIONS);
  layOut(document.contents, 0);
  if (remark !== undefined) (document.getIn([0, 'url'], true) as Node).comment = ` ${remark}`;
  return indented(document);
}

function indented(document: Document): string {
  return document
    .toString(LAYOUT)
    .slice(0, -1)
    .replace(UNSAFE, escaped)
    .replace(/^(?=.)/gm, '  ');
}

/** What contains no collections is on one line, below the members of an object. */
function layOut(node: unknown, depth: number): void {
  if (isPair(node)) {
    layOut(node.key, depth);
    layOut(node.value, depth);
  } else if (isScalar(node)) {
    const { value } = node;
    // Only there can a character be escaped, and do spaces at the ends survive editors.
    if (typeof value === 'string' && (value.search(UNSAFE) >= 0 || AT_ENDS.test(value)))
      node.type = Scalar.QUOTE_DOUBLE;
  } else if (isCollection(node)) {
    const values = node.items.map((item) => (isPair(item) ? item.value : item));
    node.flow = depth > 1 && !values.some((value) => isCollection(value) && !(isMap(node) && isFlat(value)));
    for (const item of node.items) layOut(item, depth + 1);
  }
}

function isFlat(node: unknown): boolean {
  return isCollection(node) && node.items.every((item) => isScalar(isPair(item) ? item.value : item));
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!.toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
}
