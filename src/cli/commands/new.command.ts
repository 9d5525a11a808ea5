import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Command } from 'commander';
import { packageRoot, packageVersion } from '../../platform/package-root.js';
import { shellQuoted } from '../../platform/cli-command.js';
import { CliError } from '../cli-error.js';

/** Names of npm packages, without a scope. */
const NAME = /^[a-z0-9][a-z0-9._-]*$/;

export function newCommand(): Command {
  return new Command('new')
    .description('write a Nest project of your own that runs the gateway')
    .argument('<folder>', 'new or empty; its name is the name of the project')
    .action((folder: string) => {
      writeProject(resolve(folder));
      const shown = shellQuoted(relative('.', resolve(folder)) || '.');
      process.stdout.write(
        `Created ${shown}. Next:\n\n  cd ${shown}\n  npm install\n  npm test\n  npm start\n`,
      );
    });
}

/** @throws CliError if the folder has something in it, or a name that no package may have */
function writeProject(folder: string): void {
  const name = basename(folder);
  if (!NAME.test(name))
    throw new CliError(`${name} is not a name of a package; use lower-case letters, digits and hyphens`);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CliError(`${folder} is not empty; name a new folder`);
  mkdirSync(folder, { recursive: true });
  cpSync(join(packageRoot(), 'templates', 'new'), folder, { recursive: true });
  // npm packs no .gitignore.
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
  const manifest = join(folder, 'package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8')) as {
    name: string;
    dependencies: Record<string, string>;
  };
  content.name = name;
  content.dependencies.postern = ownVersion();
  writeFileSync(manifest, `${JSON.stringify(content, null, 2)}\n`);
  const readme = join(folder, 'README.md');
  writeFileSync(readme, readFileSync(readme, 'utf8').replace('# Our gateway', `# ${name}`));
}

/** This version, or the file that it was installed from, which npm's record of the installation names. */
function ownVersion(): string {
  const packages = dirname(packageRoot());
  const record = join(packages, '.package-lock.json');
  if (basename(packages) !== 'node_modules' || !existsSync(record)) return packageVersion();
  const { packages: installed } = JSON.parse(readFileSync(record, 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  const from = installed['node_modules/postern']?.resolved ?? '';
  return from.startsWith('file:') ? `file:${resolve(dirname(packages), from.slice(5))}` : packageVersion();
}
