import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';
import { LeakedKeyService } from '../keys/leaked-key.service.js';
import { keyLines } from './key-lines.js';
import { type OutputOptions, printJson } from './output.js';
import { readSecret } from './read-secret.js';
import { withServices } from './with-services.js';

/** `postern keys find` */
export function findKeyCommand(): Command {
  return new Command('find')
    .description('tell whose key a leaked secret is; it is asked for, or read from standard input')
    .option('--json', 'print the key object with its status as JSON')
    .addHelpText('after', '\nExamples:\n  postern keys find\n  postern keys find --json < leaked.txt')
    .action(find);
}

async function find({ json }: OutputOptions): Promise<void> {
  // Spaces and line ends come along when something is copied out of a log.
  const secret = (await readSecret('Leaked key')).trim();
  const key = await withServices((app) => app.get(LeakedKeyService).find(secret));
  if (json) {
    printJson(key);
    return;
  }
  console.log(keyLines(key));
  if (key.secret_status === 'ended') {
    console.log('\nThis secret was rotated away and opens nothing any more.');
  } else if (key.status === 'active') {
    console.log(`\nIt works. To end it at once: ${cliCommand(`keys rotate ${key.id}`)}`);
  }
}
