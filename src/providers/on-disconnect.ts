import { catalogOf } from './provider-catalog.js';

/**
 * What happens to a call whose client disconnects before the response is complete: the call to the provider is cancelled, or
 * its response is read to the end, so that its usage is known.
 */
export type OnDisconnect = 'cancel' | 'finish';
export const ON_DISCONNECT = ['cancel', 'finish'] as const satisfies readonly OnDisconnect[];

export const ON_DISCONNECT_ABOUT =
  'What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider ' +
  'is closed. `finish`: the response is read to its end, so that its usage is known.';

/** Price lists of providers that go on when a client disconnects, and bill the whole response: Bedrock; Vertex AI and Gemini. */
const GO_ON: ReadonlySet<string | null> = new Set(['aws', 'google']);

/** What a new provider at this URL gets where nobody says it: as the presets have it. */
export function onDisconnectOf(url: string): OnDisconnect {
  return GO_ON.has(catalogOf(url)) ? 'finish' : 'cancel';
}
