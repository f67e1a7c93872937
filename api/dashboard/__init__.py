"""The pages that people see: plain files, which the API process serves."""
