import type { Command } from 'commander';
import { action, type Session } from '../session.js';

/** Adds `postern providers reseal`. It works on the database: the keys are in the environment, not in a request. */
export function addResealCommand(providers: Command): void {
  providers
    .command('reseal')
    .description('re-encrypt the secrets of providers and webhooks with MASTER_KEY')
    .option('--json', 'print the names by outcome as JSON')
    .addHelpText(
      'after',
      `
To change the master key:
  1. Set MASTER_KEY to the new key and MASTER_KEY_PREVIOUS to the old key for every gateway, and restart them.
  2. Run this command with the same two settings. It can be stopped and run again at any time.
  3. Remove MASTER_KEY_PREVIOUS. If any key uses replay, wait 24 hours first: stored responses are encrypted with it.

Example:
  postern providers reseal`,
    )
    .action(action(reseal));
}

async function reseal(session: Session) {
  session.mustBeLocal('the database and the master keys of the gateway');
  const { withLocalApp } = await import('../local-app.js');
  const { ResealService } = await import('../../providers/reseal.service.js');
  const { commandUser } = await import('../../platform/actor.js');
  const { loadEnv } = await import('../../config/env.js');
  const { out } = session;
  const done = await withLocalApp((app) => app.get(ResealService, { strict: false }).reseal(commandUser()));
  // Without this line, a shell that lacks the gateway's settings would look like a finished change.
  if (loadEnv().masterKeyPrevious === undefined) {
    console.error(
      'MASTER_KEY_PREVIOUS is not set for this command, so there was nothing to re-encrypt. ' +
        'To change the master key, run it with both keys, as the gateway has them.',
    );
  }
  out.result(
    done,
    () => `Re-encrypted: ${done.resealed.length}. Already encrypted with this key: ${done.current.length}.`,
  );
  if (done.unreadable.length === 0) return;
  process.exitCode = 1;
  if (!out.isJson) {
    console.error(
      `Not decrypted by MASTER_KEY or MASTER_KEY_PREVIOUS: ${done.unreadable.join(', ')}. ` +
        'Set the key they were encrypted with, or store their secrets again.',
    );
  }
}
