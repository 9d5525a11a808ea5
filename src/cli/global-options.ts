import { type Command, Option } from 'commander';

/** Options of every command. */
export interface GlobalOptions {
  url: string | undefined;
  colour: boolean;
  quiet: boolean;
  timeZone: string | undefined;
}

const DEFINITIONS: readonly (readonly [flags: string, description: string])[] = [
  ['--url <url>', 'use the gateway at this URL (default: POSTERN_URL, else this machine)'],
  ['--no-color', 'print without colours, as NO_COLOR=1 does'],
  ['-q, --quiet', 'print the result only, without hints'],
  [
    '--tz <zone>',
    'time zone of days and times, for example Europe/Berlin (default: REPORT_TIMEZONE of the gateway)',
  ],
];

const OURS = new WeakSet<Option>();

function globalOption(flags: string, description: string): Option {
  const option = new Option(flags, description);
  OURS.add(option);
  return option;
}

/**
 * Adds the global options to the program and, without showing them again, to every command below it, so that they can be
 * given before and after the name of a command. A command with an option of the same name keeps its own.
 */
export function addGlobalOptions(program: Command): void {
  for (const [flags, description] of DEFINITIONS) program.addOption(globalOption(flags, description));
  const addBelow = (command: Command) => {
    command.enablePositionalOptions();
    for (const child of command.commands) {
      const taken = new Set(child.options.map(({ long }) => long));
      for (const [flags, description] of DEFINITIONS) {
        const option = globalOption(flags, description).hideHelp();
        if (!taken.has(option.long)) child.addOption(option);
      }
      addBelow(child);
    }
  };
  addBelow(program);
}

/** The global options of a run, wherever they were given; the ones nearest to the command count. */
export function globalOptionsOf(command: Command): GlobalOptions {
  const given: Record<string, unknown> = {};
  for (let at: Command | null = command; at !== null; at = at.parent) {
    for (const option of at.options) {
      const name = option.attributeName();
      if (OURS.has(option) && at.getOptionValueSource(name) === 'cli')
        given[name] ??= at.getOptionValue(name);
    }
  }
  return {
    url: given.url as string | undefined,
    colour: given.color !== false,
    quiet: given.quiet === true,
    timeZone: given.tz as string | undefined,
  };
}
