import { type INestApplicationContext, Logger } from '@nestjs/common';
import { ProviderProbe } from '../providers/provider-probe.js';
import { ProvidersService } from '../providers/providers.service.js';

/**
 * Tests the provider of PROVIDER_URL as `postern providers test` does, and logs if it rejects PROVIDER_KEY. Says nothing of
 * other results: a provider may be unreachable, or have no such endpoint. Nobody waits for it, and it never throws.
 */
export async function warnOfRejectedKey(app: INestApplicationContext): Promise<void> {
  const provider = app.get(ProvidersService).environment;
  if (provider === null) return;
  const result = await app
    .get(ProviderProbe)
    .run(provider)
    .catch(() => null);
  if (result?.code !== 'unauthorized') return;
  new Logger('Providers').warn(
    `The provider rejected PROVIDER_KEY (${result.status}). Calls to it will fail: correct PROVIDER_KEY or PROVIDER_AUTH, and restart.`,
  );
}
