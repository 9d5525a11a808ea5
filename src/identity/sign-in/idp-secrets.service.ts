import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../../database/row-secrets.js';

/** Encrypts and decrypts the refresh tokens that the OpenID provider has given for sign-ins. */
@Injectable()
export class SignInIdpSecrets extends RowSecrets<string> {
  readonly table = 'sign_in';
  readonly name = "'sign-in ' || id";
  readonly label = "'sign-in ' || id";
  override readonly column = 'idp_refresh';
  protected override readonly place = 'idp_refresh';
}

/** The same for requests of clients, until these are signed in. */
@Injectable()
export class DeviceIdpSecrets extends RowSecrets<string> {
  readonly table = 'device_request';
  readonly name = "'request to sign in ' || id";
  readonly label = "'request to sign in ' || id";
  override readonly column = 'idp_refresh';
  protected override readonly place = 'idp_refresh';
}
