import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Person = ResponseOf<'/admin/v1/people', 'get'>['data'][number];
export type ShownPerson = ResponseOf<'/admin/v1/people/{id}', 'get'>;
export type SignIn = ShownPerson['sign_ins'][number];

/** The queries that show people and what they have. */
export const PEOPLE_LISTS = ['people', 'keys', 'key', 'key-tokens', 'sessions'];

export function stateOf({ ended_at }: Pick<Person, 'ended_at'>): { tone: Tone; label: string } {
  return ended_at === null ? { tone: 'good', label: 'active' } : { tone: 'neutral', label: 'ended' };
}

/** Why a sign-in ended, in words. */
export const END_REASONS: Readonly<Record<string, string>> = {
  signed_out: 'signed out',
  too_many: 'the person had too many',
  ended: 'ended by hand',
  person_ended: 'the person was ended',
  no_team: 'no longer in the team',
  provider: 'ended by the sign-in provider',
  over: 'its time was over',
};
