import { runHere } from '../../cli/run-here.js';

export interface CommandHelp {
  /** `['keys', 'create']` */
  readonly path: readonly string[];
  readonly help: string;
  readonly options: readonly string[];
}

/** The help of every command, as the command line prints it. */
export async function commands(path: readonly string[] = []): Promise<CommandHelp[]> {
  const { stdout } = await runHere([...path, '--help']);
  const [, list = ''] = /^Commands:\n((?: +.*\n)*)/m.exec(stdout) ?? [];
  const names = [...list.matchAll(/^ {2}(\w[\w-]*)/gm)].map(([, name]) => name!);
  const options = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option!);
  const found: CommandHelp[] = [{ path, help: stdout.trimEnd(), options }];
  for (const name of names.filter((name) => name !== 'help'))
    found.push(...(await commands([...path, name])));
  return found;
}

export function cliReference(all: readonly CommandHelp[]): string {
  return all
    .map(({ path, help }) => `## \`${['postern', ...path].join(' ')}\`\n\n\`\`\`text\n${help}\n\`\`\``)
    .join('\n\n');
}
