import { compare, compareFile } from './compare.js';
import { moduleApi } from './reference/module-api.js';

// In a file of its own: it occupies its process for seconds.
it('module-api.md has every name that the package exports, and api/ their declarations: commit a change only if it is meant', () => {
  const { reports, page } = moduleApi();
  for (const [path, report] of Object.entries(reports)) compareFile(path, report);
  compare('module-api.md', 'names', page);
});
