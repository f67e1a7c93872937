"""The base of all settings."""

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict


class Concern(BaseSettings):
    """Settings that belong together; a variable is the prefix plus the field name in upper case."""

    # Pydantic's messages would quote the input, which may be a secret.
    model_config = SettingsConfigDict(frozen=True, hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # Only load_settings reads the environment, so that it can report all errors at once.
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)
