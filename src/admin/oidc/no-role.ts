import { ForbiddenException } from '@nestjs/common';

/** A user whom the provider knows, and who has no role here. */
export class NoRole extends ForbiddenException {
  constructor(
    /** Who it is, as the audit log would name them. */
    readonly user: string,
    /** The claim that should have the groups. */
    readonly claim: string,
    /** Those that came; null: the claim is absent, or has none that is text. */
    readonly groups: readonly string[] | null,
    /** Teams that a group names and that do not exist. */
    readonly missing: readonly string[],
  ) {
    super('None of your groups has a role here.');
  }
}
