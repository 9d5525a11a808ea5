import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Checkout } from './checkout.js';

// Real: the script. Not real: ESLint, which finds something that it cannot fix, and Prettier, which writes a file.
it('npm run format formats the files also if ESLint finds something that it cannot fix', async () => {
  const checkout = new Checkout('');
  try {
    // Installs, which removes what is in node_modules.
    await checkout.start('lint.mjs', ['--fix']).ended;
    checkout.write('node_modules/eslint/bin/eslint.js', 'process.exit(1);');
    checkout.write(
      'node_modules/prettier/bin/prettier.cjs',
      "require('node:fs').writeFileSync('formatted', process.argv.join(' '));",
    );
    const { code } = await checkout.start('lint.mjs', ['--fix']).ended;
    expect([code, existsSync(join(checkout.folder, 'formatted'))]).toEqual([1, true]);
  } finally {
    checkout.remove('.');
  }
});
