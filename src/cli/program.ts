import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';
import { packageVersion } from '../platform/package-root.js';
import { applyCommand } from './commands/apply/apply.command.js';
import { auditCommand } from './commands/audit.command.js';
import { completionCommand } from './commands/completion.command.js';
import { databaseCommand } from './commands/database/database.command.js';
import { exportCommand } from './commands/apply/export.command.js';
import { findCommand } from './commands/find.command.js';
import { jobsCommand } from './commands/jobs.command.js';
import { groupsCommand } from './commands/groups/groups.command.js';
import { peopleCommand } from './commands/people/people.command.js';
import { signInsCommand } from './commands/people/sign-ins.command.js';
import { trustsCommand } from './commands/trusts/trusts.command.js';
import { journalCommand } from './commands/journal.command.js';
import { keysCommand } from './commands/keys.command.js';
import { limitsCommand } from './commands/limits.command.js';
import { migrateCommand } from './commands/migrate.command.js';
import { newCommand } from './commands/new.command.js';
import { policiesCommand } from './commands/policies/policies.command.js';
import { pricesCommand } from './commands/prices.command.js';
import { providersCommand } from './commands/providers.command.js';
import { refusalsCommand } from './commands/refusals.command.js';
import { requestsCommand } from './commands/requests.command.js';
import { routesCommand } from './commands/routes.command.js';
import { startCommand } from './commands/start.command.js';
import { attentionCommand } from './commands/status/attention.command.js';
import { statusCommand } from './commands/status/status.command.js';
import { signInCommand } from './commands/sign-in/sign-in.command.js';
import { signOutCommand } from './commands/sign-in/sign-out.command.js';
import { tokenCommand } from './commands/sign-in/token.command.js';
import { teamsCommand } from './commands/teams.command.js';
import { tokensCommand } from './commands/tokens.command.js';
import { usageCommand } from './commands/usage.command.js';
import { webhooksCommand } from './commands/webhooks.command.js';
import { sessionsCommand } from './commands/sessions.command.js';
import { sinksCommand } from './commands/sinks.command.js';
import { CliError } from './cli-error.js';
import { explain } from './failure.js';
import { addGlobalOptions } from './global-options.js';
import { migrationCommand } from './migrations/migration.command.js';

/**
 * The commands in the order of the help. A module adds its own here. Their files import only what is light: services and
 * schemas stay behind the admin API, or are imported when the command runs.
 */
const COMMANDS: readonly (() => Command)[] = [
  startCommand,
  newCommand,
  keysCommand,
  trustsCommand,
  peopleCommand,
  signInsCommand,
  teamsCommand,
  groupsCommand,
  providersCommand,
  routesCommand,
  requestsCommand,
  usageCommand,
  findCommand,
  refusalsCommand,
  jobsCommand,
  limitsCommand,
  pricesCommand,
  webhooksCommand,
  policiesCommand,
  applyCommand,
  exportCommand,
  sinksCommand,
  tokensCommand,
  sessionsCommand,
  signInCommand,
  tokenCommand,
  signOutCommand,
  statusCommand,
  attentionCommand,
  auditCommand,
  journalCommand,
  databaseCommand,
  migrateCommand,
  migrationCommand,
  completionCommand,
];

/** What people call `status`, with what Commander takes it for. A module may have commands of these names. */
const MEANS_STATUS = /^(error: unknown command '(?:health|system)')$(?:\n\(Did you mean .*\?\)$)?/m;

/** The error of Commander for a command that is not there, with what it takes it for. */
const UNKNOWN = /^(error: unknown command '(.+)')$(?:\n\(Did you mean .*\?\)$)?/m;
/** More commands of one name below others are no hint. */
const MOST_HINTS = 3;

/** Names the commands below others that are called like an unknown one: "prices reprice" for "reprice". */
function withHints(text: string, program: Command): string {
  return text.replace(UNKNOWN, (error, unknown: string, name: string) => {
    const meant = program.commands.filter(({ commands }) => commands.some((below) => below.name() === name));
    if (meant.length === 0 || meant.length > MOST_HINTS) return error;
    return `${unknown}\n(Did you mean ${meant.map((above) => cliCommand(`${above.name()} ${name}`)).join(' or ')}?)`;
  });
}

const HELP_OPTIONS: readonly string[] = ['-h', '--help'];

/** Help was asked for of a command that is not there. */
class UnknownCommand extends Error {}

/** Commander prints the help of the command above instead. @throws UnknownCommand */
function rejectUnknown({ command }: { command: Command }): string {
  const word = command.args.find((arg) => arg !== HELP);
  if (command.commands.length > 0 && word !== undefined && !word.startsWith('-')) throw new UnknownCommand();
  return '';
}

/** Asks for all commands: of Commander itself. */
const HELP = 'help';

/**
 * Whether the commands of modules are needed: for a command that is not the gateway's own, and for the list of all. So
 * the gateway's own are as fast as without modules, and work while a module is broken.
 */
function wantsModules(args: readonly string[], own: readonly Command[]): boolean {
  const word = args.find((arg) => !arg.startsWith('-'));
  if (word === undefined) return args.some((arg) => HELP_OPTIONS.includes(arg));
  return word === HELP || !own.some((command) => command.name() === word);
}

/** Builds the command line. @param more commands beside COMMANDS @throws CliError if two have one name */
function program(own: readonly Command[], more: readonly (() => Command)[]): Command {
  const program = new Command('postern')
    .description('Manages a Postern gateway: on this machine, or over HTTP with --url.')
    .version(packageVersion(), '--version', 'print the version')
    .configureHelp({
      showGlobalOptions: true,
      // Every command has options, so the list does not say so.
      subcommandTerm: (command) =>
        [
          command.name(),
          ...command.registeredArguments.map((argument) =>
            argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
          ),
        ].join(' '),
    })
    .configureOutput({
      writeOut: (text) => process.stdout.write(withCliCommand(text)),
      outputError: (text, write) =>
        write(withHints(text.replace(MEANS_STATUS, `$1\n(Did you mean ${cliCommand('status')}?)`), program)),
    })
    .addHelpText(
      'after',
      `
Without --url, commands use the gateway that runs with the settings in the
environment and .env. If none runs, they work on its database: DATABASE_URL, or
the embedded one in DATA_DIR (./data), which npm start creates.

With --url or POSTERN_URL, they use that gateway over HTTP. Its admin token is
POSTERN_ADMIN_TOKEN, or in the file that POSTERN_ADMIN_TOKEN_FILE names.

Exit code 0 on success, 1 on failure; the reason is on standard error.
With --json, standard output is JSON.

Without a command, postern starts the gateway.

Examples:
  postern keys create --team default --name ci
  postern keys list --json
  postern providers add openai --default
  postern requests list --limit 5
  postern usage --from 7d --sort tokens --url https://gateway.example.com`,
    );
  for (const command of own) program.addCommand(command);
  for (const make of more) {
    const command = make();
    const name = command.name();
    if (name === HELP || program.commands.some((other) => other.name() === name))
      throw new CliError(`a module adds the command "${name}", which there is already; rename it`);
    program.addCommand(command);
  }
  program.addHelpText('beforeAll', rejectUnknown);
  addGlobalOptions(program);
  inheritSettings(program, []);
  return program;
}

/** Applies the settings of the program to every command, and lets each error name its help. */
function inheritSettings(command: Command, names: readonly string[]): void {
  command.showHelpAfterError(`See ${cliCommand([...names, '--help'].join(' '))}.`);
  for (const below of command.commands) {
    below.copyInheritedSettings(command);
    inheritSettings(below, [...names, below.name()]);
  }
}

/** Replaces `postern` in help texts with the command that works where the reader is. */
function withCliCommand(help: string): string {
  return help.replace(/(?<=^Usage: |^ *|KEY=\$\(|"|\()postern (?=[a-z[-])/gm, cliCommand(''));
}

/**
 * Runs one command, the gateway's or a module's, and sets the process's exit code. Help and invalid arguments end the process at once.
 */
export async function run(args: readonly string[], more: readonly (() => Command)[] = []): Promise<void> {
  let running: Command | null = null;
  try {
    const own = COMMANDS.map((make) => make());
    const ofModules = wantsModules(args, own)
      ? await (await import('./module-commands.js')).moduleCommands()
      : [];
    await program(own, [...more, ...ofModules])
      .hook('preAction', (_, command) => {
        running = command;
      })
      .parseAsync(args, { from: 'user' });
  } catch (error) {
    // The same without the question for help fails, and says what is unknown.
    if (error instanceof UnknownCommand)
      return run(
        args.filter((arg) => arg !== HELP && !HELP_OPTIONS.includes(arg)),
        more,
      );
    console.error(await explain(error, running));
    process.exitCode = 1;
  }
}
