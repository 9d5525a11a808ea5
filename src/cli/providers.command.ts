import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';
import { commandUser } from '../platform/actor.js';
import { parseInput } from '../admin/parse-input.js';
import { newProviderSchema } from '../providers/providers.schema.js';
import { loadEnv } from '../config/env.js';
import { ServiceError } from '../errors/service-error.js';
import { PRESETS } from '../providers/presets.js';
import { ProviderProbe } from '../providers/provider-probe.js';
import type { ProviderView } from '../providers/providers.schema.js';
import { ResealService } from '../providers/reseal.service.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { type OutputOptions, printJson, printPage } from './output.js';
import { readSecret } from './read-secret.js';
import { shortTime } from './table.js';
import { withServices } from './with-services.js';

interface AddOptions extends OutputOptions {
  preset?: string;
  url?: string;
  auth?: string;
  /** --secret, --no-secret, or neither. */
  secret?: boolean;
  default?: boolean;
}

const SEALS = { seals: true };
const PRESET_NAMES = Object.keys(PRESETS).join(', ');

/** `postern providers …` */
export function providersCommand(): Command {
  const providers = new Command('providers');

  providers
    .command('add')
    .description('add a provider; prompts for its secret, or reads it from standard input')
    .argument('<name>', 'name in /p/<name>/…, or a preset')
    .option('--preset <preset>', 'take URL and auth from a preset (default: the preset with this name)')
    .option('--url <url>', 'base URL without /v1, for example https://api.openai.com')
    .option('--auth <style>', 'how the secret is sent: bearer, x-api-key, api-key or x-goog-api-key')
    .option('--secret', 'prompt for a secret even if the preset needs none')
    .option('--no-secret', 'the provider needs no secret')
    .option('--default', 'make it the default provider for /v1')
    .option('--json', 'print the provider as JSON')
    .addHelpText(
      'after',
      `
Presets: ${PRESET_NAMES}

Examples:
  postern providers add groq
  postern providers add openai --default < openai-key.txt
  postern providers add azure --url ${PRESETS.azure!.example}
  postern providers add big-box --preset vllm --url http://10.0.0.5:8000`,
    )
    .action(add);

  providers
    .command('list')
    .description('list providers, without their secrets')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExamples:\n  postern providers list\n  postern providers list --json')
    .action(list);

  providers
    .command('test')
    .description('send a test request to a provider and report problems; exit code 1 if there is one')
    .argument('<name>', 'provider name')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern providers test groq')
    .action(test);

  providers
    .command('remove')
    .description('remove a provider and its secret; calls to it are then rejected')
    .argument('<name>', 'provider name')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern providers remove groq')
    .action(remove);

  providers
    .command('reseal')
    .description('re-encrypt provider secrets with MASTER_KEY')
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
    .action(reseal);

  return providers;
}

async function add(name: string, options: AddOptions): Promise<void> {
  const preset = PRESETS[options.preset ?? name];
  if (preset === undefined && options.preset !== undefined) {
    throw ServiceError.of('invalid', 'preset', `must be one of ${PRESET_NAMES}`);
  }
  const url = options.url ?? preset?.url ?? undefined;
  if (url === undefined) {
    const remedy = preset?.example ? `must be given, for example ${preset.example}` : 'must be given';
    throw ServiceError.of(
      'invalid',
      'url',
      preset ? remedy : `${remedy}, because ${name} is not a preset (${PRESET_NAMES})`,
    );
  }
  const order = { name, url, auth: options.auth ?? preset?.auth, default: options.default };
  // Validates the options before it prompts for a secret.
  parseInput(newProviderSchema, { ...order, secret: null });
  const asks = options.secret ?? preset?.needsSecret ?? true;
  const secret = asks ? await readSecret(`Secret of ${preset?.title ?? name}`) : null;
  const made = parseInput(newProviderSchema, { ...order, secret });
  const provider = await withServices(
    (app) => app.get(StoredProvidersService).create(made, commandUser()),
    SEALS,
  );
  if (options.json) {
    printJson(provider);
    return;
  }
  console.log(`Added provider ${provider.name} (${provider.url}).`);
  const byDefault = provider.default ? '/v1/… (unless PROVIDER_URL is set) or ' : '';
  console.log(
    `Send calls to ${byDefault}/p/${provider.name}/…\nTest it: ${cliCommand(`providers test ${provider.name}`)}`,
  );
}

async function list({ json }: OutputOptions): Promise<void> {
  const data = await withServices((app) => app.get(StoredProvidersService).list(), SEALS);
  const head = ['NAME', 'URL', 'AUTH', 'SECRET', 'DEFAULT', 'ENABLED', 'SOURCE', 'UPDATED'];
  printPage({ data, next_cursor: null }, 'providers', { json }, head, (provider: ProviderView) => [
    provider.name,
    provider.url,
    provider.auth,
    provider.secret_state,
    provider.default,
    provider.enabled,
    provider.source,
    shortTime(provider.updated_at),
  ]);
}

async function test(name: string, { json }: OutputOptions): Promise<void> {
  const result = await withServices(
    async (app) => app.get(ProviderProbe).run(await app.get(StoredProvidersService).open(name)),
    SEALS,
  );
  if (json) printJson(result);
  else {
    const status = result.status === null ? '' : `, status ${result.status}`;
    const line = `${name}: ${result.code}${status}, ${result.duration_ms} ms\n${result.message}`;
    if (result.ok) console.log(line);
    else console.error(line);
  }
  if (!result.ok) process.exitCode = 1;
}

async function remove(name: string, { json }: OutputOptions): Promise<void> {
  await withServices((app) => app.get(StoredProvidersService).remove(name, commandUser()));
  if (json) printJson({ removed: name });
  else console.log(`Removed provider ${name}.`);
}

async function reseal({ json }: OutputOptions): Promise<void> {
  const done = await withServices((app) => app.get(ResealService).reseal(commandUser()), SEALS);
  // Without this line, a shell that lacks the gateway's settings would look like a finished change.
  if (loadEnv().masterKeyPrevious === undefined) {
    console.error(
      'MASTER_KEY_PREVIOUS is not set for this command, so there was nothing to re-encrypt. ' +
        'To change the master key, run it with both keys, as the gateway has them.',
    );
  }
  if (json) printJson(done);
  else {
    console.log(
      `Re-encrypted: ${done.resealed.length}. Already encrypted with this key: ${done.current.length}.`,
    );
    if (done.unreadable.length > 0) {
      console.error(
        `Not decrypted by MASTER_KEY or MASTER_KEY_PREVIOUS: ${done.unreadable.join(', ')}. ` +
          'Set the key they were encrypted with, or store their secrets again.',
      );
    }
  }
  if (done.unreadable.length > 0) process.exitCode = 1;
}
