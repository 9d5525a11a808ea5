import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(__dirname, '../..');
/** Folders without documents of ours. */
const NOT_OURS = new Set(['node_modules', 'dist', 'data', 'coverage', '.git']);

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
export const exists = (path: string): boolean => existsSync(join(ROOT, path));

/** Every Markdown file of the repository, by its path from the root. */
export function pages(folder = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : pages(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** A page without its fenced code: links and headings in code are none. */
export function withoutFences(text: string): string {
  return text.replace(/^( *)```[^]*?^\1```$/gm, '');
}

/** The fenced code of a page. */
export function fences(text: string): { language: string; code: string }[] {
  return [...text.matchAll(/^( *)```(\w*)\n([^]*?)^\1```$/gm)].map(([, , language, code]) => ({
    language: language!,
    code: code!,
  }));
}

/** The anchors that GitHub gives to the headings of a page. */
export function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const [, title] of withoutFences(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title!
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let i = 1; found.has(anchor); i++) anchor = `${slug}-${i}`;
    found.add(anchor);
  }
  return found;
}
