import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine } from '../support/browser.ts';
import type { RestKey } from '../support/client.ts';
import { eventually } from '../support/world.ts';

export function testKeys({ world, ui, as }: Dashboard): void {
  const statusWith = async (apiKey: string, gateway: number) =>
    (await world.gateway(gateway).withKey(apiKey).get('/')).status;
  const keysNamed = async (wanted: string) =>
    (await world.api.all<RestKey>('/admin/api-keys')).filter(({ name }) => name === wanted);

  async function createKey(page: Page, name: string): Promise<string> {
    await page.goto(ui('/api-keys'));
    await page.getByRole('button', { name: 'Create an API key' }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByRole('radio', { name: /^test/ }).check();
    await page.getByLabel('clients:read').check();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    return await page.getByLabel('API key', { exact: true }).inputValue();
  }

  describe('API keys', () => {
    it('a usual choice of scopes keeps what was entered', async () => {
      const { page, complaints } = await as('admin');
      await page.goto(ui('/api-keys/new'));
      await page.getByLabel('Name').fill('Shop');
      await page.getByLabel('keys:manage').check();
      await page.getByRole('link', { name: 'Payments' }).click();
      expect(await page.getByLabel('Name').inputValue()).toBe('Shop');
      expect(await page.getByLabel('transfers:write').isChecked()).toBe(true);
      expect(await page.getByLabel('keys:manage').isChecked()).toBe(false);
      expect(complaints).toEqual([]);
    });

    it('are created, shown once, copied, used, rotated, and revoked; a revoked one is refused on every gateway within 2 s', async () => {
      const { page, complaints } = await as('admin');
      const apiKey = await createKey(page, 'Reporting <b>tool</b>');
      expect(apiKey).toMatch(/^cbk_test_/);
      await expectFine(page, 'key-shown-once');
      await page.getByRole('button', { name: 'Copy' }).click();
      await page.getByRole('button', { name: 'Copied', exact: true }).waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(apiKey);
      await eventually(
        async () => (await statusWith(apiKey, 0)) === 200 && (await statusWith(apiKey, 1)) === 200,
        2000,
      );

      await page.reload();
      expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe(apiKey);
      await page.getByRole('button', { name: 'I have copied it' }).click();
      expect(await page.content()).not.toContain(apiKey);
      await page.goto(ui('/api-keys'));
      await page.getByRole('button', { name: 'Rotate Reporting <b>tool</b>' }).click();
      await expectFine(page, 'key-rotation');
      await page.getByRole('button', { name: 'Rotate' }).click();
      const rotated = await page.getByLabel('API key', { exact: true }).inputValue();
      expect(rotated).not.toBe(apiKey);
      await eventually(
        async () => (await statusWith(rotated, 1)) === 200 && (await statusWith(apiKey, 1)) === 200,
        2000,
      );

      await page.getByRole('button', { name: 'I have copied it' }).click();
      await page.goto(ui('/api-keys'));
      await page
        .getByRole('button', { name: /^Revoke Reporting/ })
        .first()
        .click();
      await expectFine(page, 'key-revocation');
      await page.getByRole('button', { name: 'Revoke the key' }).click();
      await page.getByText('The key is revoked').waitFor();
      await eventually(
        async () => (await statusWith(rotated, 0)) === 401 && (await statusWith(rotated, 1)) === 401,
        2000,
      );
      await page.getByRole('link', { name: 'Reporting <b>tool</b>', exact: true }).first().click();
      await expectFine(page, 'key');
      expect(complaints).toEqual([]);
    });

    it('a reload creates no second key; errors are shown at their fields, and the input is kept', async () => {
      const { page, complaints } = await as('admin');
      await createKey(page, 'Sent twice');
      await page.reload();
      await page.getByRole('button', { name: 'I have copied it' }).waitFor();
      expect(await keysNamed('Sent twice')).toHaveLength(1);
      await page.goto(ui('/api-keys/new'));
      await page.getByLabel('Name').fill('No scopes');
      await page.getByLabel('Expires').fill('2020-01-01');
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByText(/(One entry is|entries are) not valid/).waitFor();
      expect(await page.getByLabel('Name').inputValue()).toBe('No scopes');
      await expectFine(page, 'key-form-wrong');
      // The browser logs the expected 400 to its console.
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });
  });
}
