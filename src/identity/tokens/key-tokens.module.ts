import { Module } from '@nestjs/common';
import { KeysModule } from '../../keys/keys.module.js';
import { KeyTokensController } from './key-tokens.controller.js';
import { KeyTokens } from './key-tokens.service.js';

/** Which tokens of a key work. */
@Module({ imports: [KeysModule], controllers: [KeyTokensController], providers: [KeyTokens] })
export class KeyTokensModule {}
