import { ownerValues } from '../../keys/own-key.js';
import type { PersonView } from './people.schema.js';

type Named = Pick<PersonView, 'issuer' | 'subject' | 'email'>;

/** As Access.userId says it. */
export function userIdOf({ issuer, subject }: Pick<Named, 'issuer' | 'subject'>): string {
  return `sso:${issuer}#${subject}`;
}

/** As the audit log and keys call the person. */
export function actorNameOf({ email, subject }: Pick<Named, 'email' | 'subject'>): string {
  return email === null ? `sso:sub:${subject}` : `sso:${email}`;
}

/** Values of isOwnSql() for the own keys of the person. */
export function ownerOf(person: Named): [string, string] {
  return ownerValues({ actor: { name: actorNameOf(person), address: null }, userId: userIdOf(person) });
}
