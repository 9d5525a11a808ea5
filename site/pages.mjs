// The pages of the site, from the Markdown files of the checkout: what a link names that is no page is a file of the
// source, which the site links only where it is told the address of the source.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, posix } from 'node:path';

const FIRST = 'docs/README.md';
/** Shown or downloaded from the site itself. */
const COPIED = /^docs\/.*\.(?:png|json)$/;

const COMMENT_CODE_OR_LINK =
  /^ *```[^]*?^ *```$|<!--[^]*?-->|(!?)\[((?:[^\][`]|`[^`\n]*`)*)\]\(([^)\s]+)\)|`[^`\n]*`/gm;

/** The anchor of a heading, as GitHub makes it. */
export const anchorOf = (title) =>
  title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-');

/** Its address on the site. */
const addressOf = (file) => (file === FIRST ? 'index.md' : file.replace(/^docs\//, ''));

/**
 * Writes the first page, and every page that links lead to from there.
 *
 * @param root of the checkout
 * @param to an empty folder
 * @param source address of a folder with the files of this commit, without a slash at the end; null for none
 * @returns addresses of the pages
 */
export function writePages({ root, to, source }) {
  const written = new Set([FIRST]);
  for (const file of written) {
    const page = readFileSync(join(root, file), 'utf8');
    write(to, addressOf(file), linkedAgain(page, file));
  }
  return [...written].map(addressOf);

  function linkedAgain(page, file) {
    return page.replace(COMMENT_CODE_OR_LINK, (text, image, label, target) => {
      if (text.startsWith('<!--')) return '';
      if (target === undefined || /^(?:[a-z]+:|#)/.test(target)) return text;
      const [path, anchor] = target.split('#');
      const named = posix.normalize(posix.join(posix.dirname(file), path));
      if (!existsSync(join(root, named))) throw new Error(`${file} links ${target}, which is not there`);
      if (extname(named) === '.md') written.add(named);
      else if (COPIED.test(named)) copy(join(root, named), join(to, addressOf(named)));
      else return source === null ? label : `[${label}](${source}/${named})`;
      const address = posix.relative(posix.dirname(addressOf(file)), addressOf(named));
      return `${image}[${label}](${address.startsWith('.') ? '' : './'}${address}${anchor ? `#${anchor}` : ''})`;
    });
  }
}

/** The sections of the first page and their pages, for the navigation beside each page. */
export function navigation(first) {
  return first
    .replace(/^# .*/, '## Start')
    .split(/^## /m)
    .filter((section) => section !== '')
    .map((section) => {
      const [text] = section.split('\n', 1);
      const items = [
        ...section.matchAll(/^(?:-|\d+\.|Start with) \[([^\]]+)\]\(\.\/([^)#]+)\.md(#[^)]*)?\)/gm),
      ];
      return {
        text,
        collapsed: text === 'Decisions',
        items: items.map(([, name, path, anchor = '']) => ({ text: name, link: `/${path}${anchor}` })),
      };
    });
}

/** What tools that read for a model look for first: each page and what it is about (llmstxt.org). */
export function llmsText(first, description) {
  const [, ...sections] = first.split(/^(?=## )/m);
  return `# Postern\n\n> ${description}\n\n${sections.join('').replaceAll('](./', '](')}`;
}

function write(to, path, text) {
  mkdirSync(dirname(join(to, path)), { recursive: true });
  writeFileSync(join(to, path), text);
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}
