import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';

/** Each command is loaded on demand: the services it needs take a second to load. */
const COMMANDS: readonly { name: string; description: string; load: () => Promise<Command> }[] = [
  {
    name: 'keys',
    description: 'gateway keys, which clients send to this gateway',
    load: async () => (await import('./keys.command.js')).keysCommand(),
  },
  {
    name: 'teams',
    description: 'teams that gateway keys belong to',
    load: async () => (await import('./teams.command.js')).teamsCommand(),
  },
  {
    name: 'providers',
    description: 'providers that calls are forwarded to',
    load: async () => (await import('./providers.command.js')).providersCommand(),
  },
  {
    name: 'requests',
    description: 'the request log: one row per forwarded call',
    load: async () => (await import('./requests.command.js')).requestsCommand(),
  },
  {
    name: 'usage',
    description: 'sum up calls, errors, tokens and bytes',
    load: async () => (await import('./usage.command.js')).usageCommand(),
  },
  {
    name: 'journal',
    description: 'inspect the journal of a gateway that is gone and write its rows to Postgres',
    load: async () => (await import('./journal.command.js')).journalCommand(),
  },
  {
    name: 'migrate',
    description: 'migrate the database; only needed with MIGRATE=off',
    load: async () => (await import('./migrate.command.js')).migrateCommand(),
  },
];

/** Builds the command line. It uses the gateway's services on its database, without HTTP. */
async function program(args: readonly string[]): Promise<Command> {
  const program = new Command('postern')
    .description('Manages a Postern gateway through its database, whether or not the gateway is running.')
    .version(version(), '--version', 'print the version')
    .configureOutput({ writeOut: (text) => process.stdout.write(withCliCommand(text)) })
    .addHelpText(
      'after',
      `
The database is DATABASE_URL, or the embedded one in DATA_DIR (./data), which npm start creates. Settings come from
the environment and from .env. Exit code 0 on success, 1 on failure; the reason is on standard error.

Examples:
  postern keys create --team default --name ci
  postern keys list --json
  postern providers add openai --default
  postern requests list --limit 5`,
    );
  for (const { name, description, load } of COMMANDS) {
    const command = args.includes(name) ? await load() : new Command(name);
    program.addCommand(command.description(description));
    inheritSettings(command, program);
  }
  return program;
}

/** Applies the settings of the program to its subcommands. */
function inheritSettings(command: Command, above: Command): void {
  command.copyInheritedSettings(above);
  for (const below of command.commands) inheritSettings(below, command);
}

/** Replaces `postern` in help texts with the command that works where the reader is. */
function withCliCommand(help: string): string {
  return help.replace(/(?<=^Usage: |^ *|KEY=\$\(|")postern (?=[a-z[])/gm, cliCommand(''));
}

function version(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/**
 * Runs one command and sets the process's exit code. Help and invalid arguments end the process at once.
 */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await (await program(args)).parseAsync(args, { from: 'user' });
  } catch (error) {
    const { explain } = await import('./failure.js');
    console.error(explain(error));
    process.exitCode = 1;
  }
}
