import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Checkout } from './checkout.js';

// Real: the script. Not real: its tools, in the place of those that were installed.
describe('npm run lint', () => {
  let checkout: Checkout;
  beforeEach(async () => {
    checkout = new Checkout('');
    // Installs, which removes what is in node_modules.
    await checkout.start('lint.mjs', ['--fix']).ended;
    for (const tool of ['oxlint/bin/oxlint', 'oxfmt/bin/oxfmt', 'typescript-7/bin/tsc'])
      checkout.write(`node_modules/${tool}`, '');
  });
  afterEach(() => checkout.remove('.'));

  it('formats the files also if Oxlint finds something that it cannot fix (npm run format)', async () => {
    checkout.write('node_modules/oxlint/bin/oxlint', 'process.exit(1);');
    checkout.write(
      'node_modules/oxfmt/bin/oxfmt',
      "require('node:fs').writeFileSync('formatted', process.argv.join(' '));",
    );
    const { code } = await checkout.start('lint.mjs', ['--fix']).ended;
    expect([code, existsSync(join(checkout.folder, 'formatted'))]).toEqual([1, true]);
  });

  it('checks the types of the console too, with those of the admin API generated again', async () => {
    const own = { name: 'small-console', version: '1.0.0' };
    const scripts = { types: `node -e "require('fs').writeFileSync('made', '')"` };
    checkout.write('console/package.json', JSON.stringify({ ...own, scripts }));
    const lock = { ...own, lockfileVersion: 3, requires: true, packages: { '': own } };
    checkout.write('console/package-lock.json', JSON.stringify(lock));
    checkout.write('console/node_modules/.package-lock.json', '{"packages":{}}');
    const lint = () => checkout.start('lint.mjs').ended;
    checkout.write(
      'node_modules/typescript-7/bin/tsc',
      "require('node:fs').appendFileSync('checked', process.argv[4].slice(process.cwd().length) + '\\n');",
    );
    expect(await lint()).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(checkout.folder, 'checked'), 'utf8')).toBe('\n/console/tsconfig.json\n');
    expect(existsSync(join(checkout.folder, 'console/made'))).toBe(true);

    checkout.write('node_modules/typescript-7/bin/tsc', "process.exit(process.argv[4].includes('console'));");
    expect(await lint()).toMatchObject({ code: 1 });
  });
});
