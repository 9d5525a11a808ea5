// Of the site that scripts/docs-site.mjs builds from docs/.
import { readFileSync } from 'node:fs';
import { anchorOf, navigation } from './pages.mjs';

export default {
  title: 'Postern',
  description: 'A transparent gateway in front of language-model providers',
  lang: 'en',
  // None: a browser would ask for /favicon.ico.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: 'pages',
  // Served as files by whatever server there is.
  cleanUrls: false,
  // An address in a text that a reader would type.
  ignoreDeadLinks: 'localhostLinks',
  markdown: {
    // Pages are Markdown for every reader: no HTML, no components, and the anchors that links of the pages name.
    html: false,
    anchor: { slugify: anchorOf },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: navigation(readFileSync('pages/index.md', 'utf8')),
  },
};
