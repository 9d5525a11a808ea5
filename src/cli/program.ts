import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';

/** A command is loaded when it is asked for: the services it needs take a second to load. */
const COMMANDS: readonly { name: string; description: string; load: () => Promise<Command> }[] = [
  {
    name: 'keys',
    description: 'gateway keys: what clients send to this gateway',
    load: async () => (await import('./keys.command.js')).keysCommand(),
  },
  {
    name: 'teams',
    description: 'the teams that gateway keys belong to',
    load: async () => (await import('./teams.command.js')).teamsCommand(),
  },
  {
    name: 'providers',
    description: 'where calls go, and with which secret',
    load: async () => (await import('./providers.command.js')).providersCommand(),
  },
  {
    name: 'requests',
    description: 'the request log: one row per forwarded call',
    load: async () => (await import('./requests.command.js')).requestsCommand(),
  },
  {
    name: 'usage',
    description: 'calls, errors, tokens and bytes, added up',
    load: async () => (await import('./usage.command.js')).usageCommand(),
  },
  {
    name: 'journal',
    description: 'look into the journal of a gateway that is gone, and bring its rows to Postgres',
    load: async () => (await import('./journal.command.js')).journalCommand(),
  },
  {
    name: 'migrate',
    description: 'bring the database up to date; needed by hand only with MIGRATE=off',
    load: async () => (await import('./migrate.command.js')).migrateCommand(),
  },
];

/** The command line: the gateway's services on its database, without HTTP and whether or not the gateway runs. */
async function program(args: readonly string[]): Promise<Command> {
  const program = new Command('postern')
    .description('Manages a Postern gateway through its database, whether or not the gateway is running.')
    .version(version(), '--version', 'print the version')
    .configureOutput({ writeOut: (text) => process.stdout.write(typeable(text)) })
    .addHelpText(
      'after',
      `
The database is DATABASE_URL, else the embedded one in DATA_DIR (./data), which npm start makes. Settings come from
the environment and from .env. Exit code 0: done; 1: not done, and the reason is on standard error.

Examples:
  postern keys create --team default --name ci
  postern keys list --json
  postern providers add openai --default
  postern requests list --limit 5`,
    );
  for (const { name, description, load } of COMMANDS) {
    const command = args.includes(name) ? await load() : new Command(name);
    program.addCommand(command.description(description));
    settle(command, program);
  }
  return program;
}

/** Help of the commands below is written the same way. */
function settle(command: Command, above: Command): void {
  command.copyInheritedSettings(above);
  for (const below of command.commands) settle(below, command);
}

/** Help in which each command stands as its reader can type it. */
function typeable(help: string): string {
  return help.replace(/(?<=^Usage: |^ *|KEY=\$\(|")postern (?=[a-z[])/gm, cliCommand(''));
}

function version(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/**
 * Runs one command to its end and leaves its outcome in the process's exit code. Help and arguments that it refuses end
 * the process at once.
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
